// expects: fault
/* nothing */ // here
