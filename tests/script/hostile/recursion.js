// expects: fault Maximum call stack size exceeded
function f() {
    f();
}
