// expects: done [1,2]
function f() {
    for (const name of Object.getOwnPropertyNames(Array.prototype)) {
        if (name !== "constructor" && name !== "length") Array.prototype[name] = () => { throw new Error(name); };
    }
    Object.defineProperty(Array.prototype, "0", { set() { throw new Error("set 0"); } });
    __.response.setBody([1, 2]);
}
