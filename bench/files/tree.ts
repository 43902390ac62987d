import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { cp, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { inTurn, ratioRow, wholeProcess } from '../measure.ts'
import type { Row } from '../row.ts'
import type { Place } from './place.ts'

const directories = 100
const filesEach = 100
const largest = 8192
const rounds = 5

/** Milliseconds for packing, sending and writing a tree. */
async function copyTree({ fleet }: Place, from: string, path: string, isChanged: boolean): Promise<number> {
  const began = performance.now()
  const tar = spawn('tar', ['-cf', '-', '-C', from, '.'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const answer = await fetch(`${fleet.url}/api/files`, {
    method: 'POST',
    headers: { authorization: `Bearer ${fleet.token}`, 'content-type': 'application/octet-stream' },
    body: Readable.toWeb(tar.stdout) as ReadableStream<Uint8Array>,
    duplex: 'half',
  })
  const { data } = (await answer.json()) as { data: { fileId: string } }
  const task = await fleet.call('POST', '/api/tasks', {
    copy: { fileId: data.fileId, path, kind: 'TREE' },
    target: { selector: 'host1' },
    async: false,
  })
  const [result] = task['results'] as { status: string; changed: boolean; error: string | null }[]
  if (result?.status !== 'SUCCESS' || result.changed !== isChanged) throw new Error(JSON.stringify(result))
  return performance.now() - began
}

/** A tree that is up to date on its host. */
export async function benchTree(place: Place): Promise<Row[]> {
  const { sshd, directory } = place
  if (spawnSync('rsync', ['--version']).status !== 0) {
    process.stderr.write('rsync is missing: trees are not compared with it\n')
    return []
  }
  const [from, ours, theirs] = ['tree', 'ours', 'theirs'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ]
  for (let n = 0; n < directories; n++) {
    await mkdir(join(from, `${n}`), { recursive: true })
    for (let file = 0; file < filesEach; file++)
      await writeFile(join(from, `${n}`, `${file}`), randomBytes(1 + ((file * 83) % largest)))
  }
  await cp(from, theirs, { recursive: true })
  const ssh = ['ssh', ...sshd.options].join(' ')
  await copyTree(place, from, ours, true)
  const measured = await inTurn(
    rounds,
    () => copyTree(place, from, ours, false),
    () => wholeProcess('rsync', ['-rnc', '-e', ssh, `${from}/`, `localhost:${theirs}`]),
  )
  const name = `a tree of ${directories * filesEach} unchanged files, over REST, vs rsync -rnc over ssh`
  return [ratioRow(name, 'ms', measured, { atMost: 3 })]
}
