// expects: done "kept"
async function f() {
    Promise.prototype.then = function () { throw new Error("no"); };
    getContext().getResponse().setBody("kept");
}
