// builtins.js — what the API needs of the language, taken before a script can change any of it.
//
// The files of this folder are joined, in the order of meson.build, into one function that the engine calls with `host` before each
// script: host.call(text) sends a CALL ("c" and its JSON) and gives the ANSWER's text, or "" when it is nested too deeply; host.check(text, url)
// throws the SyntaxError of a text; host.evaluate(text, url) evaluates it in the global scope.
//
// A script may redefine everything it can reach: Array.prototype, JSON, setters on Object.prototype, Symbol.iterator, exec of regular
// expressions. So once a script runs nothing here looks up a method of a built-in object, iterates, destructures arrays, or uses a
// regular expression; and what comes from JSON is read through own().
const reflectApply = Reflect.apply;
const reflectConstruct = Reflect.construct;
const parse = JSON.parse;
const stringify = JSON.stringify;
const create = Object.create;
const defineProperty = Object.defineProperty;
const freeze = Object.freeze;
const setPrototypeOf = Object.setPrototypeOf;
const keysOf = Object.keys;
const hasOwn = Object.hasOwn;
const isArray = Array.isArray;
const floor = Math.floor;
const random = Math.random;
const now = Date.now;
const toText = String;

const method = (f) => (self, ...parameters) => reflectApply(f, self, parameters);
const indexOf = method(String.prototype.indexOf);
const lastIndexOf = method(String.prototype.lastIndexOf);
const slice = method(String.prototype.slice);
const startsWith = method(String.prototype.startsWith);
const lowerCase = method(String.prototype.toLowerCase);
const matchText = method(String.prototype.match);
const sortArray = method(Array.prototype.sort);
const sliceArray = method(Array.prototype.slice);

const own = (object, name) => (hasOwn(object, name) ? object[name] : undefined);

/** A property that `for … in` does not show, as those of the language's own objects. */
function hide(object, name, value) {
    defineProperty(object, name, { __proto__: null, value, writable: true, configurable: true, enumerable: false });
}

// Not deleted: that would make the engine spell out its whole global object, which it does not do otherwise, for each script.
for (const name of ['WebAssembly', 'SharedArrayBuffer', 'Atomics', 'FinalizationRegistry', 'ShadowRealm', 'console']) {
    hide(globalThis, name, undefined);
}
