// expects: stopped
function f() {
    let s = "";
    for (let i = 0; ; i++) s += "abc" + i;
}
