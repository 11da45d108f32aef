// expects: any
function f() {
    new Float64Array(2 ** 32);
}
