// expects: done [null,null,0,1e+300,5e-324]
function f() {
    getContext().getResponse().setBody([NaN, -Infinity, -0, 1e300, 5e-324]);
}
