// expects: fault
function f() {
    Error = undefined;
    Object.defineProperty(TypeError.prototype, "message", { get() { for (;;); } });
    Object.getPrototypeOf(TypeError.prototype).toString = () => { throw 1; };
    null.x;
}
