// expects: done 3
function f() {
    with ({ x: 3 }) {
        getContext().getResponse().setBody(x);
    }
}
