// errors.js — Error as in the service's engine, and the FAULT frames made from thrown values.

const ErrorCodes = freeze({
    BadRequest: 400,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    PreconditionFailed: 412,
    RequestEntityTooLarge: 413,
    RetryWith: 449,
    InternalServerError: 500,
});

const MESSAGE_CHARACTERS_MAX = 16 * 1024;
const API_URL = 'tesela:api';

// On the service `new Error(404, 'not there')` has a number in addition to its message; it becomes the response's sub-status.
const NativeError = Error;
const ScriptError = {
    Error: function (message, more) {
        const numbered = typeof message === 'number' && arguments.length > 1;
        const made = reflectConstruct(NativeError, numbered ? [more] : [message, more], new.target || ScriptError);
        if (numbered) {
            hide(made, 'number', message);
        }
        return made;
    },
}.Error;
setPrototypeOf(ScriptError, NativeError);
defineProperty(ScriptError, 'prototype', { __proto__: null, value: NativeError.prototype, writable: false });
hide(NativeError.prototype, 'constructor', ScriptError);
hide(globalThis, 'Error', ScriptError);
hide(globalThis, 'ErrorCodes', ErrorCodes);

function fail(number, message) {
    throw new ScriptError(number, message);
}

/** The error that a callback gets if its call failed: an Error with {number, body}. */
function callError(number, body) {
    const error = new ScriptError(body);
    error.number = number;
    error.body = body;
    return error;
}

const cut = (text) => (text.length > MESSAGE_CHARACTERS_MAX ? slice(text, 0, MESSAGE_CHARACTERS_MAX) : text);

/** The first line: "Error: why" for an error, a string itself, the JSON of another object. May run a script's getters, so callers catch. */
function headOf(thrown) {
    if (typeof thrown !== 'object' && typeof thrown !== 'function') {
        return toText(thrown);
    }
    if (thrown instanceof NativeError) {
        const name = toText(thrown.name);
        const message = toText(thrown.message);
        return message === '' ? name : name + ': ' + message;
    }
    const text = stringify(thrown);
    return typeof text === 'string' ? text : toText(thrown);
}

/** Converts a line of the engine's stack, "name@url:line:column", to the service's form; '' for lines of this API. */
function frameOf(line) {
    const at = indexOf(line, '@');
    const place = at < 0 ? line : slice(line, at + 1);
    if (startsWith(place, API_URL) || indexOf(place, ':') < 0) {
        return '';
    }
    const name = at < 0 ? '' : slice(line, 0, at);
    const shown = name === '' ? 'Anonymous function' : name === 'global code' || name === 'eval code' ? 'Global code' : name;
    return '\n   at ' + shown + ' (' + place + ')';
}

function framesOf(stack) {
    let text = '';
    for (let from = 0; from < stack.length && text.length < MESSAGE_CHARACTERS_MAX; ) {
        const end = indexOf(stack, '\n', from);
        const line = slice(stack, from, end < 0 ? stack.length : end);
        text += frameOf(line);
        from += line.length + 1;
    }
    return text;
}

/** The place of a syntax error, which is not in the stack. */
function placeOf(thrown) {
    const known = thrown instanceof SyntaxError && typeof thrown.sourceURL === 'string' && typeof thrown.line === 'number';
    return known ? '\n   at Global code (' + thrown.sourceURL + ':' + thrown.line + ')' : '';
}

function traceOf(thrown, head) {
    if (typeof thrown !== 'object' || thrown === null || typeof thrown.stack !== 'string') {
        return '';
    }
    const frames = framesOf(thrown.stack) || placeOf(thrown);
    return frames === '' ? '' : '\r\nStack trace: ' + head + frames;
}

function numberOf(thrown) {
    const number = typeof thrown === 'object' && thrown !== null ? thrown.number : undefined;
    return typeof number === 'number' && number === floor(number) && number >= 0 && number < 100000 ? number : undefined;
}

function guarded(work, fallback) {
    try {
        return work();
    } catch {
        return fallback;
    }
}

/** The service's message for a thrown value; `what` says what the engine was doing. */
function faultMessage(what, thrown) {
    const head = cut(guarded(() => headOf(thrown), 'a value that cannot be shown'));
    const trace = cut(guarded(() => traceOf(thrown, head), ''));
    return 'Encountered exception while ' + what + '. Exception = ' + head + trace;
}

/** The text of a FAULT frame: its kind, then its JSON. */
function faultFrame(what, thrown, compile, log) {
    const message = stringify(faultMessage(what, thrown));
    const number = guarded(() => numberOf(thrown), undefined);
    return (
        'f{"compile":' + (compile ? 'true' : 'false') + ',"message":' + message +
        (number === undefined ? '' : ',"number":' + number) + (log === '' ? '' : ',"log":' + stringify(log)) + '}'
    );
}
