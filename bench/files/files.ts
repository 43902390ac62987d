import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startFleet } from '../fleet/fleet.ts'
import { startSshd } from '../fleet/sshd.ts'
import type { Row } from '../row.ts'
import { benchManyHosts } from './many-hosts.ts'
import { benchOneHost } from './one-host.ts'
import { benchTree } from './tree.ts'

/** Copies of files to hosts vs scp and rsync over a private sshd (reliability L10). */
export async function benchFiles(): Promise<Row[]> {
  const sshd = await startSshd()
  if (!sshd) {
    process.stderr.write('sshd is missing: copies are not compared with scp\n')
    return []
  }
  const rows: Row[] = []
  const groups = [
    { hosts: 2, work: [benchOneHost, benchTree] },
    { hosts: 50, work: [benchManyHosts] },
  ]
  try {
    for (const { hosts, work } of groups) {
      const directory = await mkdtemp(join(tmpdir(), 'rsm-bench-files-'))
      const fleet = await startFleet(hosts)
      try {
        for (const bench of work) rows.push(...(await bench({ fleet, sshd, directory })))
      } finally {
        await fleet.stop()
        await rm(directory, { recursive: true, force: true })
      }
    }
    return rows
  } finally {
    await sshd.stop()
  }
}
