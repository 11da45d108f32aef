// expects: any
function f() {
    const a = Array(5e6).fill(1);
    Math.max(...a);
}
