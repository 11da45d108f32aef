// compile.js — from the text of a script to the function that is called.
//
// Most scripts are one function: `function name(a, b) {…}`, one without a name, an arrow. Others are several functions beside each
// other, or a variable that holds one: there the first one that stands in the text is called, as on the service.

const CANDIDATES_MAX = 50;

/** The names that a text declares at the beginning of a statement, first one first; nested ones too. Runs before the script does. */
function declaredNames(text) {
    const found = matchAll(text, /(?:^|[;}\n])[ \t]*(?:(?:async[ \t]+)?function[ \t]*\*?[ \t]*|(?:var|let|const)[ \t]+)[\w$]+/g) || [];
    const names = [];
    for (let i = 0; i < found.length && i < CANDIDATES_MAX; i++) {
        names.push(found[i].match(/[\w$]+$/)[0]);
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

function syntaxErrorOf(text, url) {
    try {
        host.check(text, url);
        return undefined;
    } catch (error) {
        return error;
    }
}

/** The function of a script, or a throw: with `compiled` false when the text is no script, true when running it failed. */
function compile(text, id, state) {
    const url = id + '.js';
    const single = '(' + text + '\n)';
    const names = declaredNames(text);
    const wrong = syntaxErrorOf(single, url);
    if (wrong === undefined) {
        state.compiled = true;
        const made = host.evaluate(single, url);
        if (typeof made === 'function') {
            return made;
        }
    } else {
        const alsoWrong = syntaxErrorOf(text, url);
        if (alsoWrong !== undefined) {
            throw names.length === 0 ? wrong : alsoWrong;
        }
        state.compiled = true;
        const made = names.length === 0 ? undefined : firstFunction(text, names, url);
        if (typeof made === 'function') {
            return made;
        }
        const last = host.evaluate(text, url);
        if (typeof last === 'function') {
            return last;
        }
    }
    state.compiled = false;
    throw new TypeError('The body of a script has to be a function.');
}
