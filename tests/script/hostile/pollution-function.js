// expects: done 1
function f() {
    Function.prototype.call = Function.prototype.apply = Function.prototype.bind = () => { throw new Error("called"); };
    Reflect.apply = Reflect.construct = null;
    Reflect = undefined;
    __.response.setBody(1);
}
