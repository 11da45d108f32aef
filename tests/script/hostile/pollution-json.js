// expects: done "kept"
function f() {
    JSON.stringify = () => "}{";
    JSON.parse = () => { throw new Error("parse"); };
    JSON = undefined;
    getContext().getResponse().setBody("kept");
}
