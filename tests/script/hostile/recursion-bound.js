// expects: any
function f() {
    let g = () => 1;
    for (let i = 0; i < 1e5; i++) g = g.bind(null);
    g();
}
