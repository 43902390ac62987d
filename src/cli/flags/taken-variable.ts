import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'

/**
 * The value of a variable that holds a secret; undefined where it is not set or empty. No process that is started from
 * now on inherits it, and on Linux /proc/PID/environ of this one shows it no more.
 */
export function takeVariable(name: string): string | undefined {
  const value = process.env[name] || undefined
  delete process.env[name]
  try {
    overwrite(name)
  } catch {
    // Without /proc, or where it refuses this, the user of this process and root can still read it there.
  }
  return value
}

/** Writes zeros over the copy that the kernel shows: the process was started with it, and libc leaves it as it is. */
function overwrite(name: string): void {
  const block = readFileSync('/proc/self/environ')
  const at = Buffer.concat([Buffer.of(0), block]).indexOf(`\0${name}=`)
  // Field 50 of proc(5); those behind the name of the program, which may hold spaces, begin with the third.
  const fields = readFileSync('/proc/self/stat', 'latin1').split(') ').at(-1)?.split(' ') ?? []
  const start = Number(fields[50 - 3])
  if (at < 0 || !(start > 0)) return
  const memory = openSync('/proc/self/mem', 'r+')
  try {
    writeSync(memory, Buffer.alloc(block.indexOf(0, at) - at), 0, null, start + at)
  } finally {
    closeSync(memory)
  }
}
