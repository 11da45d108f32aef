// expects: done ["undefined","undefined","undefined"]
function f() {
    const other = Function.prototype.constructor("return this")();
    const async = Object.getPrototypeOf(async function () {}).constructor;
    getContext().getResponse().setBody([typeof other.WebAssembly, typeof async("").WebAssembly, typeof globalThis["Shared" + "ArrayBuffer"]]);
}
