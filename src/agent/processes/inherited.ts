import { closeSync, readdirSync, readFileSync } from 'node:fs'

/** O_CLOEXEC, as /proc/PID/fdinfo has it (proc(5)): octal. */
const closeOnExec = 0o2000000

/**
 * Closes the descriptors that whoever started this process left open, as `exec 200>lock` in a shell does: each script
 * would inherit them, whoever it runs as. Node opens none of its own without O_CLOEXEC. To be called first of all.
 */
export function closeInherited(): void {
  for (const name of readdirSync('/proc/self/fd')) {
    const fd = Number(name)
    if (fd <= 2) continue
    try {
      const flags = /^flags:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${name}`, 'latin1'))?.[1]
      if (flags !== undefined && (Number.parseInt(flags, 8) & closeOnExec) === 0) closeSync(fd)
    } catch {
      // The descriptor of this very look, which is closed by now.
    }
  }
}
