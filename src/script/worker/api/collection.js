// collection.js — the container as a script sees it: calls take effect at once, and their callbacks run later.
//
// A call is sent to the server when it is made, so effects happen in the order of calls. Its callback waits in a queue until the running
// function has returned. If a call without a callback fails, the error is thrown from the queue and ends the script.

const CALL_CHARACTERS_MAX = 8 * 1024 * 1024;
const PAGE_SIZE_DEFAULT = 100;

let selfLink = '';
let altLink = '';
let closed = false; // no more calls are accepted: the script has ended, though some of its code may still run

// ---- the queue ----

let oldest = null;
let newest = null;

function enqueue(run) {
    const task = { __proto__: null, run, next: null };
    if (newest === null) {
        oldest = task;
    } else {
        newest.next = task;
    }
    newest = task;
}

function dequeue() {
    const task = oldest;
    if (task !== null) {
        oldest = task.next;
        newest = oldest === null ? null : newest;
    }
    return task;
}

// ---- calls ----

/** Sends a call; returns the server's answer, or null if it accepts no more calls. `parts` is JSON text to append after the link. */
function ask(op, link, parts) {
    if (closed) {
        return null;
    }
    const text = 'c{"op":"' + op + '","link":' + stringify(link) + parts + '}';
    if (text.length > CALL_CHARACTERS_MAX) {
        fail(413, 'Request size is too large');
    }
    const given = host.call(text);
    if (given === '') {
        fail(400, 'The document is nested too deeply.');
    }
    const answer = parse(given);
    return own(answer, 'accepted') === false ? null : answer;
}

function errorOf(answer) {
    const status = own(answer, 'status');
    return status >= 400 ? callError(status, toText(own(answer, 'message'))) : undefined;
}

/** The third argument of a callback. */
function optionsOf(answer) {
    const options = { statusCode: own(answer, 'status') };
    if (hasOwn(answer, 'continuation')) {
        options.continuation = answer.continuation;
    }
    if (options.statusCode === 304) {
        options.notModified = true;
    }
    addOwn(options, own(answer, 'options'));
    return options;
}

function addOwn(target, source) {
    const names = typeof source === 'object' && source !== null ? keysOf(source) : [];
    for (let i = 0; i < names.length; i++) {
        defineProperty(target, names[i], { __proto__: null, value: source[names[i]], writable: true, configurable: true, enumerable: true });
    }
}

function deliver(answer, callback, withBody) {
    const error = errorOf(answer);
    if (callback === undefined) {
        if (error !== undefined) {
            throw error;
        }
        return;
    }
    if (error !== undefined) {
        callback(error);
    } else if (withBody) {
        callback(undefined, own(answer, 'body'), optionsOf(answer));
    } else {
        callback(undefined, optionsOf(answer));
    }
}

/** Makes a call; true if it was accepted, and its callback will be called. */
function submit(op, link, parts, callback, withBody = true) {
    const answer = ask(op, link, parts);
    if (answer === null) {
        return false;
    }
    enqueue(() => deliver(answer, callback, withBody));
    return true;
}

// ---- arguments ----

function needArguments(name, least, given) {
    if (given < least) {
        fail(400, 'The function "' + name + '" requires at least ' + least + ' argument(s) but was called with ' + given + ' argument(s).');
    }
}

/** Accepts (options, callback), (callback) or no arguments. */
function takeOptions(options, callback) {
    if (callback === undefined && typeof options === 'function') {
        return { __proto__: null, options: {}, callback: options };
    }
    if (options !== undefined && options !== null && typeof options !== 'object') {
        fail(400, 'The "options" parameter must be of type "object". Actual type is: "' + typeof options + '".');
    }
    if (callback !== undefined && callback !== null && typeof callback !== 'function') {
        fail(400, 'The "callback" parameter must be of type "function". Actual type is: "' + typeof callback + '".');
    }
    return { __proto__: null, options: options || {}, callback: callback || undefined };
}

/** Whether a link is this container's or, with `below`, begins with it. Links may end with a slash or not. */
function isWithin(link, container, below) {
    const bare = container[container.length - 1] === '/' ? slice(container, 0, -1) : container;
    if (bare === '' || !startsWith(link, bare)) {
        return false;
    }
    const rest = slice(link, bare.length);
    return below ? rest.length > 1 && rest[0] === '/' : rest === '' || rest === '/';
}

function hasSegment(link, number, word) {
    let from = 0;
    for (let i = 0; i < number; i++) {
        from = indexOf(link, '/', from) + 1;
        if (from === 0) {
            return false;
        }
    }
    const end = indexOf(link, '/', from);
    return lowerCase(slice(link, from, end < 0 ? link.length : end)) === word;
}

function outside(link) {
    fail(
        400,
        'Function is not allowed to operate on resources outside current collection. Make sure that the link provided, "' + cut(link) +
            '", belongs to current collection.',
    );
}

function checkCollectionLink(link) {
    if (typeof link !== 'string' || !hasSegment(link, 0, 'dbs') || !hasSegment(link, 2, 'colls')) {
        fail(400, 'Invalid collection link: "' + cut(toText(link)) + '".');
    }
    if (!isWithin(link, selfLink, false) && !isWithin(link, altLink, false)) {
        outside(link);
    }
    return link;
}

function checkDocumentLink(link) {
    if (typeof link !== 'string' || !hasSegment(link, 0, 'dbs') || !hasSegment(link, 2, 'colls') || !hasSegment(link, 4, 'docs')) {
        fail(400, 'Invalid document link: "' + cut(toText(link)) + '".');
    }
    if (!isWithin(link, selfLink, true) && !isWithin(link, altLink, true)) {
        outside(link);
    }
    return link;
}

function hexDigits(count) {
    let text = '';
    for (let i = 0; i < count; i++) {
        text += '0123456789abcdef'[floor(random() * 16)];
    }
    return text;
}

const newId = () => hexDigits(8) + '-' + hexDigits(4) + '-' + hexDigits(4) + '-' + hexDigits(4) + '-' + hexDigits(12);

/** The JSON text of an item given as an object or as text. With `makeId`, adds an id if there is none, unless the options forbid it. */
function itemText(body, options, makeId) {
    if (body === null || (typeof body !== 'object' && typeof body !== 'string')) {
        fail(400, 'The document body must be an object or a string representing a JSON-serialized object.');
    }
    let item = typeof body === 'string' ? parse(body) : body;
    if (makeId && options.disableAutomaticIdGeneration !== true && typeof item === 'object' && item !== null && !item.id) {
        const copy = {};
        addOwn(copy, item);
        copy.id = newId();
        item = copy;
    }
    const text = stringify(item);
    if (typeof text !== 'string') {
        fail(400, 'The document body must be an object or a string representing a JSON-serialized object.');
    }
    return text;
}

function addOption(text, name, value) {
    if (value === undefined || value === null || value === '' || value === false) {
        return text;
    }
    const kind = typeof value;
    const shown = kind === 'number' ? (value === value && value - value === 0 ? '' + value : '0') : kind === 'boolean' ? 'true' : stringify(toText(value));
    return text + (text === '' ? '' : ',') + '"' + name + '":' + shown;
}

/** options.etag, or the older SDKs' options.accessCondition {type, condition}. */
function conditionText(options) {
    const given = options.accessCondition;
    const isObject = typeof given === 'object' && given !== null;
    const kind = isObject ? lowerCase(toText(given.type)) : '';
    let text = addOption('', 'etag', options.etag || (kind === 'ifmatch' ? given.condition : ''));
    text = addOption(text, 'ifNoneMatch', options.ifNoneMatch || (kind === 'ifnonematch' ? given.condition : ''));
    return addOption(text, 'indexAction', options.indexAction);
}

function pageText(options) {
    let text = addOption('', 'pageSize', options.pageSize || PAGE_SIZE_DEFAULT);
    text = addOption(text, 'continuation', options.continuation);
    return addOption(text, 'enableScan', options.enableScan === true);
}

const withOptions = (text) => (text === '' ? '' : ',"options":{' + text + '}');

function queryText(query) {
    if (typeof query === 'string') {
        return '{"query":' + stringify(query) + '}';
    }
    if (typeof query !== 'object' || query === null) {
        fail(400, 'The "filterQuery" parameter must be of type "string" or "object". Actual type is: "' + typeof query + '".');
    }
    const parameters = query.parameters === undefined || query.parameters === null ? '[]' : stringify(query.parameters);
    return '{"query":' + stringify(toText(query.query)) + ',"parameters":' + (typeof parameters === 'string' ? parameters : '[]') + '}';
}

// ---- the container ----

const collection = {
    getSelfLink: () => selfLink,
    getAltLink: () => altLink,

    createDocument(link, body, options, callback) {
        needArguments('createDocument', 2, arguments.length);
        checkCollectionLink(link);
        const taken = takeOptions(options, callback);
        const text = itemText(body, taken.options, true);
        return submit('create', link, ',"body":' + text + withOptions(conditionText(taken.options)), taken.callback);
    },

    upsertDocument(link, body, options, callback) {
        needArguments('upsertDocument', 2, arguments.length);
        checkCollectionLink(link);
        const taken = takeOptions(options, callback);
        const text = itemText(body, taken.options, true);
        return submit('upsert', link, ',"body":' + text + withOptions(conditionText(taken.options)), taken.callback);
    },

    readDocument(link, options, callback) {
        needArguments('readDocument', 1, arguments.length);
        checkDocumentLink(link);
        const taken = takeOptions(options, callback);
        return submit('read', link, withOptions(conditionText(taken.options)), taken.callback);
    },

    readDocuments(link, options, callback) {
        needArguments('readDocuments', 1, arguments.length);
        checkCollectionLink(link);
        const taken = takeOptions(options, callback);
        return submit('list', link, withOptions(pageText(taken.options)), taken.callback);
    },

    queryDocuments(link, query, options, callback) {
        needArguments('queryDocuments', 2, arguments.length);
        checkCollectionLink(link);
        const taken = takeOptions(options, callback);
        return submit('query', link, ',"query":' + queryText(query) + withOptions(pageText(taken.options)), taken.callback);
    },

    replaceDocument(link, body, options, callback) {
        needArguments('replaceDocument', 2, arguments.length);
        checkDocumentLink(link);
        const taken = takeOptions(options, callback);
        const text = itemText(body, taken.options, false);
        return submit('replace', link, ',"body":' + text + withOptions(conditionText(taken.options)), taken.callback);
    },

    deleteDocument(link, options, callback) {
        needArguments('deleteDocument', 1, arguments.length);
        checkDocumentLink(link);
        const taken = takeOptions(options, callback);
        return submit('delete', link, withOptions(conditionText(taken.options)), taken.callback, false);
    },
};

// Scripts cannot use attachments, only REST can: a call is accepted, and its callback gets an error.
for (const name of ['create', 'upsert', 'read', 'query', 'replace', 'delete']) {
    const refuse = function (...parameters) {
        const last = parameters.length === 0 ? undefined : parameters[parameters.length - 1];
        const answer = { __proto__: null, status: 400, message: 'Attachments cannot be used in a script.' };
        enqueue(() => deliver(answer, typeof last === 'function' ? last : undefined, true));
        return true;
    };
    collection[name + 'Attachment' + (name === 'query' ? 's' : '')] = refuse;
    if (name === 'read') {
        collection.readAttachments = refuse;
    }
}
