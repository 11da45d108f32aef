// compile.js — turns the text of a script into the function to call.
//
// Most scripts are a single function: `function name(a, b) {…}`, an anonymous one, or an arrow. Others have several functions, or a
// variable that holds one; then the first in the text is called, as on the service.

const CANDIDATES_MAX = 50;

function syntaxErrorOf(text, url) {
    try {
        host.check(text, url);
        return undefined;
    } catch (error) {
        return error;
    }
}

/**
 * The names that a text declares at the beginning of a statement, in order. Includes nested declarations, and text in comments that looks
 * like a declaration. Runs before any script code.
 */
function declaredNames(text, url) {
    const found = matchText(text, /(?:^|[;}\n])[ \t]*(?:(?:async[ \t]+)?function[ \t]*\*?[ \t]*|(?:var|let|const)[ \t]+)[\w$]+/g) || [];
    const names = [];
    for (let i = 0; i < found.length && i < CANDIDATES_MAX; i++) {
        const name = matchText(found[i], /[\w$]+$/)[0];
        if (syntaxErrorOf('(' + name + ')', url) === undefined) {
            names[names.length] = name;
        }
    }
    return names;
}

function firstFunction(text, names, url) {
    let choice = 'undefined';
    for (let i = names.length - 1; i >= 0; i--) {
        choice = 'typeof ' + names[i] + ' === "function" ? ' + names[i] + ' : ' + choice;
    }
    return host.evaluate('(function () {' + text + '\n;return ' + choice + ';})()', url);
}

/**
 * Parses a text without running it, and returns how it can be evaluated: as a single function, or as a script that declares names. Throws a
 * SyntaxError if it is neither.
 */
function readScript(text, id) {
    const url = id + '.js';
    const single = '(' + text + '\n)';
    const wrong = syntaxErrorOf(single, url);
    if (wrong === undefined) {
        return { __proto__: null, url, single, text: '', names: [] };
    }
    const names = declaredNames(text, url);
    const alsoWrong = syntaxErrorOf(text, url);
    if (alsoWrong !== undefined) {
        throw names.length === 0 ? wrong : alsoWrong;
    }
    return { __proto__: null, url, single: '', text, names };
}

/** The function of a parsed script; runs the script's top-level code. Undefined if there is no function. */
function makeFunction(script) {
    if (script.single !== '') {
        return host.evaluate(script.single, script.url);
    }
    const first = script.names.length === 0 ? undefined : firstFunction(script.text, script.names, script.url);
    return typeof first === 'function' ? first : host.evaluate(script.text, script.url);
}

const noFunction = () => new TypeError('The body of a script has to be a function.');
