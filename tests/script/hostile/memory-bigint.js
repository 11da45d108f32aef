// expects: any
function f() {
    let n = 3n;
    for (;;) n *= n;
}
