// run.js — one run of a stored procedure or a trigger: start(text of RUN), then step() until it returns the final frame.
//
// Between two steps the engine runs promise jobs, so a step is one function of the script: its main function, or one callback. The run
// ends when no callback is waiting; promises that are still pending then can never be resolved.

let run = null;
let requestFields = null;
let responseFields = null;
let ended = null; // {thrown}: the script was aborted, or a promise rejection was not handled
const underscore = create(collection);

const endWith = (thrown) => {
    ended = ended || { __proto__: null, thrown };
    closed = true;
};

function rejected(promise, reason) {
    endWith(reason);
}

function publish() {
    const request = makeMessage(requestFields);
    const context = {
        getCollection: () => collection,
        getRequest: () => request,
        abort(reason) {
            endWith(reason);
            throw reason;
        },
    };
    underscore.request = request;
    if (responseFields !== null) {
        const response = makeMessage(responseFields);
        context.getResponse = () => response;
        underscore.response = response;
    }
    hide(globalThis, 'getContext', () => context);
    hide(globalThis, '__', underscore);
    hide(globalThis, 'console', makeConsole(own(run, 'logging') === true));
}

const EXECUTING = 'executing function';
const COMPILING = 'compiling Javascript';

/** Compiles the script and queues its main function. Returns undefined, or the FAULT frame. */
function start(text) {
    run = parse(text);
    const links = own(run, 'collection') || {};
    selfLink = toText(own(links, 'self') || '');
    altLink = toText(own(links, 'alt') || '');
    requestFields = makeRequestFields(run);
    responseFields = own(run, 'kind') === 'pre' ? null : makeResponseFields(run);
    publish();
    let compiled = false;
    try {
        const script = readScript(toText(own(run, 'body')), toText(own(run, 'id')));
        compiled = true;
        const main = makeFunction(script);
        compiled = typeof main === 'function';
        if (!compiled) {
            throw noFunction();
        }
        const parameters = own(run, 'args') || [];
        enqueue(() => reflectApply(main, undefined, parameters));
    } catch (thrown) {
        closed = true;
        return faultFrame(compiled ? EXECUTING : COMPILING, thrown, !compiled, log);
    }
    return undefined;
}

function doneFrame() {
    closed = true;
    const field = (own(run, 'kind') === 'pre' ? requestFields : responseFields).Body;
    const text = field.given ? stringify(field.value) : undefined; // a body that was not set is not sent: its numbers keep all digits
    const hasBody = typeof text === 'string';
    if (hasBody && text.length > BODY_CHARACTERS_MAX) {
        tooLarge('Body');
    }
    const body = hasBody ? '"body":' + text : '';
    return 'd{' + body + (log === '' ? '' : (hasBody ? ',' : '') + '"log":' + stringify(log)) + '}';
}

function step() {
    try {
        if (ended !== null) {
            return faultFrame(EXECUTING, ended.thrown, false, log);
        }
        const task = dequeue();
        if (task === null) {
            return doneFrame();
        }
        task.run();
        return undefined;
    } catch (thrown) {
        closed = true;
        return faultFrame(EXECUTING, ended !== null ? ended.thrown : thrown, false, log);
    }
}
