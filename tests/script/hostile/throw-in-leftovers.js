// expects: fault Exception = Error: first
function f() {
    Promise.resolve().then(() => { throw new Error("second"); });
    throw new Error("first");
}
