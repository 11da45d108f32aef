// expects: done 1
function f() {
    for (let i = 0; i < 1e5; i++) console.log("x".repeat(1000));
    getContext().getResponse().setBody(1);
}
