// functions.js — the user-defined functions of one query: define(text of DEFINE) once, then rows(text of ROWS) for each batch.
//
// A batch is parsed as a whole and answered as a whole. The loop is hot code, so it calls functions with few arguments directly, and
// writes common results without JSON.stringify. If a function throws, only its own row fails.

const SLICE_MS = 50;
const RESULTS_CHARACTERS_MAX = 4 * 1024 * 1024;

const functions = [];
const EXECUTING_FUNCTION = 'executing Javascript';

/** Parses all texts before any of them can run. */
function define(text) {
    hide(globalThis, 'console', makeConsole(false));
    let compiled = false;
    try {
        const given = own(parse(text), 'functions');
        const scripts = [];
        for (let i = 0; i < given.length; i++) {
            scripts[i] = readScript(toText(own(given[i], 'body')), toText(own(given[i], 'id')));
        }
        for (let i = 0; i < scripts.length; i++) {
            compiled = true;
            const made = makeFunction(scripts[i]);
            compiled = typeof made === 'function';
            if (!compiled) {
                throw noFunction();
            }
            defineProperty(functions, i, { __proto__: null, value: made, writable: true, configurable: true, enumerable: true });
        }
    } catch (thrown) {
        return faultFrame(compiled ? EXECUTING_FUNCTION : COMPILING, thrown, !compiled, '');
    }
    return 'r{}';
}

const valueOf = (given) => (isArray(given) ? given[0] : given);

/** A row is [function, argument, …]. */
function callRow(row) {
    const f = functions[row[0]];
    switch (row.length) {
        case 1:
            return f();
        case 2:
            return f(valueOf(row[1]));
        case 3:
            return f(valueOf(row[1]), valueOf(row[2]));
        case 4:
            return f(valueOf(row[1]), valueOf(row[2]), valueOf(row[3]));
    }
    const parameters = [];
    for (let i = 1; i < row.length; i++) {
        parameters[i - 1] = valueOf(row[i]);
    }
    return reflectApply(f, undefined, parameters);
}

function resultText(value) {
    switch (typeof value) {
        case 'number':
            return value - value === 0 ? '' + value : 'null';
        case 'boolean':
            return value ? 'true' : 'false';
        case 'undefined':
            return '[]';
        case 'string':
            return stringify(value);
    }
    if (value === null) {
        return 'null';
    }
    const text = stringify(value);
    return typeof text === 'string' ? '[' + text + ']' : '[]';
}

function threwText(thrown) {
    return '{"threw":' + stringify(faultMessage(EXECUTING_FUNCTION, thrown)) + '}';
}

function rowText(row) {
    try {
        return resultText(callRow(row));
    } catch (thrown) {
        return threwText(thrown);
    }
}

/** Runs as many rows as time and size limits allow, at least one. */
function rows(text) {
    const batch = parse(text);
    const until = now() + SLICE_MS;
    let out = rowText(batch[0]);
    for (let i = 1; i < batch.length && out.length < RESULTS_CHARACTERS_MAX && now() < until; i++) {
        out += ',' + rowText(batch[i]);
    }
    return 's[' + out + ']';
}

return { start, step, rejected, define, rows };
