// message.js — the request and the response that a script sees, and console.log.

const BODY_CHARACTERS_MAX = 4 * 1024 * 1024;
const LOG_CHARACTERS_MAX = 64 * 1024;

let log = '';

function tooLarge(name) {
    fail(
        413,
        'Resulting message would be too large because of "' + name +
            '". Return from script with current message and use continuation token to call the script again or modify your script.',
    );
}

function checkSize(name, value) {
    if (value === undefined || value === null) {
        return;
    }
    const text = typeof value === 'object' ? stringify(value) : toText(value);
    if (typeof text === 'string' && text.length > BODY_CHARACTERS_MAX) {
        tooLarge(name);
    }
}

/**
 * `fields` is an object without prototype: name -> {value, writable, given}; `given` is true once the script has set it. Each field gets
 * getName and, if writable, setName and appendName.
 */
function makeMessage(fields) {
    const message = {};
    const get = (name) => {
        const field = fields[name];
        return field === undefined ? undefined : field.value;
    };
    const writable = (name) => {
        const field = fields[name];
        if (field === undefined) {
            fail(400, 'Cannot set new values: ' + toText(name));
        }
        if (!field.writable) {
            fail(403, 'Not a writable property: ' + toText(name));
        }
        return field;
    };
    const set = (name, value) => {
        const field = writable(name);
        checkSize(name, value);
        field.value = value;
        field.given = true;
    };
    const append = (name, value) => {
        const before = writable(name).value;
        set(name, before === undefined || before === null ? value : toText(before) + toText(value));
    };
    const names = keysOf(fields);
    for (let i = 0; i < names.length; i++) {
        const name = names[i];
        message['get' + name] = () => get(name);
        if (fields[name].writable) {
            message['set' + name] = (value) => set(name, value);
            message['append' + name] = (value) => append(name, value);
        }
    }
    message.getValue = get;
    message.setValue = set;
    message.appendValue = append;
    return message;
}

function addFields(fields, values) {
    const names = typeof values === 'object' && values !== null ? keysOf(values) : [];
    for (let i = 0; i < names.length; i++) {
        fields[names[i]] = { __proto__: null, value: values[names[i]], writable: false };
    }
    return fields;
}

function bodyField(given, writable) {
    return { __proto__: null, Body: { __proto__: null, value: own(given, 'body'), writable } };
}

function makeRequestFields(run) {
    const given = own(run, 'request') || {};
    const fields = bodyField(given, own(run, 'kind') === 'pre');
    fields.OperationType = { __proto__: null, value: own(given, 'operation'), writable: false };
    return addFields(fields, own(given, 'headers'));
}

function makeResponseFields(run) {
    const given = own(run, 'response') || {};
    const fields = bodyField(given, true);
    if (own(run, 'kind') === 'post') {
        fields.ResourceQuotaCurrentUsage = { __proto__: null, value: own(given, 'usage'), writable: false };
        fields.MaxResourceQuota = { __proto__: null, value: own(given, 'quota'), writable: false };
    }
    return addFields(fields, own(given, 'headers'));
}

/** Like C's printf, with %s and %% only. */
function format(text, values) {
    let out = '';
    let from = 0;
    let used = 1;
    for (let at = indexOf(text, '%'); at >= 0; at = indexOf(text, '%', from)) {
        const kind = text[at + 1];
        out += slice(text, from, at);
        out += kind === 's' ? (used < values.length ? toText(values[used++]) : 'undefined') : kind === '%' ? '%' : '%' + (kind || '');
        from = at + 2;
    }
    return out + slice(text, from);
}

function makeConsole(logging) {
    const write = function (...values) {
        if (!logging || log.length >= LOG_CHARACTERS_MAX) {
            return;
        }
        if (values.length > 1 && typeof values[0] !== 'string') {
            fail(400, 'First argument to console.log should be a string containing zero or more substitution strings.');
        }
        log += slice(values.length > 1 ? format(values[0], values) : toText(values[0]), 0, LOG_CHARACTERS_MAX - log.length);
    };
    return { log: write, info: write, warn: write, error: write, debug: write };
}
