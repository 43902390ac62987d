import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { lstatSync, readdirSync } from 'node:fs'
import { chmod, mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { realAgent } from '../../helpers/agents/real-agent.ts'
import { sendBytes, sha256Of, upload } from '../../helpers/clients/files.ts'
import { entries, finished } from '../../helpers/clients/tasks.ts'
import { readInLoop, wholeText } from '../../helpers/files/reader.ts'
import { type ServerProcess, startServerProcess } from '../../helpers/servers/server-process.ts'
import { until } from '../../helpers/until.ts'

const asRoot = process.getuid?.() === 0 ? test : test.skip // Only root may become another user.

async function site(t: ExecutionContext, hostnames: readonly string[] = ['web1']) {
  const server = await startServerProcess(t)
  const hostIds: number[] = []
  for (const hostname of hostnames) hostIds.push((await realAgent(t, server, { hostname })).hostId)
  const directory = temporaryDirectory(t)
  const start = async (body: object) =>
    (await server.data('POST', '/api/tasks', { ...body, target: { hostIds } })).taskId as string
  return {
    server,
    hostIds,
    directory,
    start,
    run: async (body: object) => finished(server, await start(body)),
  }
}

/** The file that a task fetched from a host. */
async function fetched(server: ServerProcess, taskId: string, hostId: number | undefined): Promise<Buffer> {
  const headers = { authorization: `Bearer ${server.token}` }
  const answer = await fetch(`${server.url}/api/tasks/${taskId}/files/${hostId}`, { headers })
  return Buffer.from(await answer.arrayBuffer())
}

test('a file is copied to hosts, skipped where it is up to date, and fetched back unchanged', async (t) => {
  const { server, hostIds, directory, run } = await site(t, ['web1', 'web2'])
  const bytes = randomBytes(300_000)
  const { fileId } = await upload(server, bytes)
  const copy = { fileId, path: join(directory, '%h.bin'), kind: 'FILE', mode: '0640' }
  for (const changed of [true, false]) {
    const { status, results } = await run({ copy })
    t.is(status, 'SUCCESS', JSON.stringify(results))
    t.deepEqual(
      results.map((result) => result.changed),
      [changed, changed],
    )
  }
  for (const name of ['web1', 'web2']) {
    t.deepEqual(await readFile(join(directory, `${name}.bin`)), bytes)
    t.is((await stat(join(directory, `${name}.bin`))).mode & 0o777, 0o640)
  }
  const back = await run({ fetch: { path: copy.path, kind: 'FILE' } })
  t.is(back.status, 'SUCCESS', JSON.stringify(back.results))
  for (const hostId of hostIds) t.deepEqual(await fetched(server, back.taskId, hostId), bytes)
})

test('a script reads a file of the server as its stdin, also a secret file', async (t) => {
  const { server, run } = await site(t)
  for (const query of ['', 'secret=true']) {
    const { fileId } = await upload(server, 'read me\n', query)
    const { status, taskId } = await run({ script: { content: 'cat' }, stdin: { fileId } })
    t.is(status, 'SUCCESS')
    t.is((await entries(server, taskId)).map(({ data }) => data).join(''), 'read me\n')
  }
})

test('a fetched tree is a tar, and copied back it is the same tree', async (t) => {
  const { server, hostIds, directory, run } = await site(t)
  const [from, to] = [join(directory, 'from'), join(directory, 'to')]
  await mkdir(join(from, 'deep'), { recursive: true })
  await writeFile(join(from, 'deep', 'a'), 'a')
  await writeFile(join(from, 'b'), 'b')
  const { status, taskId, results } = await run({ fetch: { path: from, kind: 'TREE' } })
  t.is(status, 'SUCCESS', JSON.stringify(results))
  const { fileId } = await upload(server, await fetched(server, taskId, hostIds[0]))
  const copied = await run({ copy: { fileId, path: to, kind: 'TREE' } })
  t.is(copied.status, 'SUCCESS', JSON.stringify(copied.results))
  t.is(await readFile(join(to, 'deep', 'a'), 'utf8'), 'a')
  t.is(await readFile(join(to, 'b'), 'utf8'), 'b')
})

test('a copy survives kill -9 of the server, keeps the rate of its task, and leaves no partial file', async (t) => {
  const { server, directory, start } = await site(t, ['web1', 'web2', 'web3'])
  const bytes = randomBytes(400_000)
  const names = ['web1', 'web2', 'web3']
  const { data } = await sendBytes(server, 'POST', `/api/files?sha256=${sha256Of(bytes)}`, bytes)
  const copy = { fileId: data.fileId, path: join(directory, '%h'), kind: 'FILE' }
  const taskId = await start({ copy, limitRate: 200_000 })
  await until('each host has begun', () => readdirSync(directory).length === names.length)
  await server.kill()
  t.true(readdirSync(directory).some((name) => name.endsWith('.part')))
  await server.start()
  const ended = await finished(server, taskId)
  t.is(ended.status, 'SUCCESS', JSON.stringify(ended.results))
  t.deepEqual(readdirSync(directory).sort(), names)
  for (const name of names) t.deepEqual(await readFile(join(directory, name)), bytes)
})

test('hosts that share a directory write the same file to it at once', async (t) => {
  const { server, directory, run } = await site(t, ['web1', 'web2'])
  const bytes = randomBytes(400_000)
  const { fileId } = await upload(server, bytes)
  const file = await run({ copy: { fileId, path: join(directory, 'f'), kind: 'FILE' }, limitRate: 400_000 })
  t.is(file.status, 'SUCCESS', JSON.stringify(file.results))
  t.deepEqual(await readFile(join(directory, 'f')), bytes)
  t.deepEqual(readdirSync(directory), ['f'])
})

test('a reader sees the old or the new file, never a part, during 200 replacements by a real agent', async (t) => {
  t.timeout(110_000)
  const { server, directory, run } = await site(t)
  const lines = 20_000
  const path = join(directory, 'file')
  await writeFile(path, wholeText(0, lines))
  const end = readInLoop(t, path, lines)
  let next = 1
  // Several replacements at once, so that they replace each other's file.
  const replacing = async () => {
    for (let n = next++; n <= 200; n = next++) {
      const { fileId } = await upload(server, wholeText(n, lines))
      const { status, results } = await run({ copy: { fileId, path, kind: 'FILE' } })
      t.is(status, 'SUCCESS', JSON.stringify(results))
      t.true(results[0]?.changed)
      t.timeout(110_000)
    }
  }
  await Promise.all(Array.from({ length: 4 }, replacing))
  t.regex(await end(), /^reads \d{2,}\n$/)
  t.deepEqual(readdirSync(directory), ['file'])
})

asRoot(
  'a symlink planted by another user in a world-writable directory is not followed, by a file or a tree',
  async (t) => {
    const { server, directory, run } = await site(t)
    const [shared, kept] = [join(directory, 'shared'), join(directory, 'kept')]
    await chmod(directory, 0o755)
    await mkdir(shared)
    await chmod(shared, 0o1777)
    await mkdir(kept)
    await writeFile(join(kept, 'shadow'), 'kept\n', { mode: 0o600 })
    const plant = (to: string, name: string) =>
      execFileSync('ln', ['-s', to, join(shared, name)], { uid: 65_534, gid: 65_534 })
    plant(join(kept, 'shadow'), 'file')
    plant(join(kept, 'new'), 'dangling')
    plant(kept, 'deep')
    t.is(lstatSync(join(shared, 'file')).uid, 65_534)

    const { fileId } = await upload(server, 'copied\n')
    for (const name of ['file', 'dangling']) {
      const { status, results } = await run({ copy: { fileId, path: join(shared, name), kind: 'FILE' } })
      t.is(status, 'SUCCESS', JSON.stringify(results))
      t.true(lstatSync(join(shared, name)).isFile())
      t.is(await readFile(join(shared, name), 'utf8'), 'copied\n')
    }
    const source = join(directory, 'source')
    await mkdir(join(source, 'deep'), { recursive: true })
    await writeFile(join(source, 'deep', 'shadow'), 'copied\n')
    const tar = execFileSync('tar', ['-cf', '-', '-C', source, '.'])
    const tree = await upload(server, tar)
    const { status, results } = await run({ copy: { fileId: tree.fileId, path: shared, kind: 'TREE' } })
    t.is(status, 'FAILED')
    t.regex(results[0]?.error ?? '', /deep/)
    t.is(await readFile(join(kept, 'shadow'), 'utf8'), 'kept\n')
    t.is((await stat(join(kept, 'shadow'))).mode & 0o777, 0o600)
    t.deepEqual(readdirSync(kept), ['shadow'])
    t.deepEqual(
      readdirSync(shared).filter((name) => name.endsWith('.part')),
      [],
    )
  },
)
