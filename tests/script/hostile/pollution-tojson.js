// expects: done "mine"
function f() {
    Object.prototype.toJSON = () => "mine";
    Array.prototype.toJSON = () => "mine";
    String.prototype.toJSON = () => "mine";
    getContext().getResponse().setBody({ a: 1 });
}
