// Node opens its debugger when SIGUSR1 comes and nobody listens to it: on a port at which every user of the machine may then run
// code as the user of this process. People send that signal to make a daemon open its log again.
process.on('SIGUSR1', () => {})
