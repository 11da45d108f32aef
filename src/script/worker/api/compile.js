// compile.js — from the text of a script to the function that is called.
//
// Most scripts are one function: `function name(a, b) {…}`, one without a name, an arrow. Others are several functions beside each
// other, or a variable that holds one: there the first one that stands in the text is called, as on the service.

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
 * The names that a text declares at the beginning of a statement, first one first; nested ones too, and what only looks like one, in a comment.
 * Runs before any script does.
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
 * Reads a text without running any of it: the ways in which it can be evaluated, in the order in which they are tried. Throws the SyntaxError
 * of one that is no script.
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

/** The function of a script that was read; runs what stands around it. Undefined when there is none. */
function makeFunction(script) {
    if (script.single !== '') {
        return host.evaluate(script.single, script.url);
    }
    const first = script.names.length === 0 ? undefined : firstFunction(script.text, script.names, script.url);
    return typeof first === 'function' ? first : host.evaluate(script.text, script.url);
}

const noFunction = () => new TypeError('The body of a script has to be a function.');
