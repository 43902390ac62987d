import { readdir, readFile, readlink } from 'node:fs/promises'

const listening = '0A'

/** Inodes of the sockets that listen on a port of this machine (proc(5)). */
async function socketsOn(port: number): Promise<string[]> {
  const wanted = port.toString(16).toUpperCase().padStart(4, '0')
  const found: string[] = []
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    const text = await readFile(table, 'utf8').catch(() => '')
    for (const line of text.split('\n').slice(1)) {
      const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/)
      if (state === listening && local.endsWith(`:${wanted}`)) found.push(inode)
    }
  }
  return found
}

/** Who listens there, as `nginx (pid 812)`; null where that can't be seen: other users' processes show root only. */
export async function holderOfPort(port: number): Promise<string | null> {
  const wanted = new Set((await socketsOn(port)).map((inode) => `socket:[${inode}]`))
  if (wanted.size === 0) return null
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name)))
    for (const descriptor of await readdir(`/proc/${pid}/fd`).catch(() => [])) {
      const target = await readlink(`/proc/${pid}/fd/${descriptor}`).catch(() => '')
      if (!wanted.has(target)) continue
      const name = await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')
      return `${name.trim()} (pid ${pid})`
    }
  return null
}
