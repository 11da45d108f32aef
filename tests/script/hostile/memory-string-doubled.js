// expects: fault Out of memory
function f() {
    let s = "abc";
    for (;;) s += s;
}
