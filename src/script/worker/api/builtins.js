// builtins.js — captures the language's built-in functions that the API needs, before a script can change them.
//
// The files of this folder are concatenated, in the order of meson.build, into one function that the engine calls with `host` before each
// script. host.call(text) sends a CALL ("c" and its JSON) and returns the ANSWER's text, or "" if the call is nested too deeply.
// host.check(text, url) throws the SyntaxError of a text. host.evaluate(text, url) evaluates a text in the global scope.
//
// A script may redefine everything it can reach: Array.prototype, JSON, setters on Object.prototype, Symbol.iterator, exec of regular
// expressions. So once a script runs, no code here looks up a method of a built-in object, iterates, destructures arrays or uses a
// regular expression, and parsed JSON is read through own().
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

/** Defines a property that is not enumerable, like those of built-in objects. */
function hide(object, name, value) {
    defineProperty(object, name, { __proto__: null, value, writable: true, configurable: true, enumerable: false });
}

// Hidden, not deleted: deleting makes the engine materialise its whole global object for each script.
for (const name of ['WebAssembly', 'SharedArrayBuffer', 'Atomics', 'FinalizationRegistry', 'ShadowRealm', 'console']) {
    hide(globalThis, name, undefined);
}
