// expects: any
function f() {
    try {
        f();
    } catch (e) {
        f();
    }
}
