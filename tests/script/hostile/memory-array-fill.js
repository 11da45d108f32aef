// expects: any
function f() {
    Array(1e9).fill(1);
}
