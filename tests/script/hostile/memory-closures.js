// expects: stopped
function f() {
    let g = () => 0;
    for (let i = 0; ; i++) {
        const before = g;
        g = () => before() + i;
    }
}
