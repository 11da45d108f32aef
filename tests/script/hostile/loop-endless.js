// expects: stopped
function f() {
    for (;;);
}
