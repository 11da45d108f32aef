// expects: any
function f() {
    const a = [];
    a.length = 4294967295;
    a.indexOf(5);
    a.reverse();
}
