// expects: fault Exception = Error: xxx
function f() {
    throw new Error("x".repeat(3e7));
}
