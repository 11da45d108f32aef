// expects: done {"a":1}
function f() {
    for (const name of ["accepted", "status", "body", "message", "continuation", "value", "writable", "next", "run", "kind", "get", "set"]) {
        Object.defineProperty(Object.prototype, name, { __proto__: null, configurable: true, get() { throw new Error("read " + name); }, set() { throw new Error("set " + name); } });
    }
    __.response.setBody({ a: 1 });
}
