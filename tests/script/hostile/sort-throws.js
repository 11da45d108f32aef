// expects: fault Exception = no
function f() {
    [3, 2, 1].sort(() => { throw "no"; });
}
