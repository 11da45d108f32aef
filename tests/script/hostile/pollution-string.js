// expects: fault Exception = Error: plain
function f() {
    for (const name of Object.getOwnPropertyNames(String.prototype)) {
        if (name !== "length") String.prototype[name] = () => { throw new Error(name); };
    }
    throw new Error("plain");
}
