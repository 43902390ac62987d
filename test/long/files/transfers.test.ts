import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { copyingAgent, done, holds } from '../../helpers/agents/copying-agent.ts'
import { sha256 } from '../../helpers/servers/file-routes.ts'
import { inTar } from '../../helpers/tar.ts'

const bytes = Buffer.from(Array.from({ length: 1_000_000 }, (_, n) => `${n}\n`).join(''))

test('a copy resumes where it was cut, at every quarter, and waits while the server has no room', async (t) => {
  const { fileRoutes, copy, directory, path } = await copyingAgent(t)
  const content = Buffer.alloc(400_000, 'files of rsm ')
  const file = fileRoutes.put('f1', content)
  fileRoutes.fault = (request, response, nth) => {
    const asked = fileRoutes.asked(request)
    if (asked === null) return false
    if (nth === 1) response.writeHead(503, { 'retry-after': '0.1' }).end()
    else {
      response.writeHead(asked.from > 0 ? 206 : 200)
      response.write(asked.bytes.subarray(0, 100_000), () => response.destroy())
    }
    return true
  }
  t.like(await copy({ file, path }), { ...done, changed: true })
  t.true(readFileSync(path).equals(content))
  t.true(fileRoutes.requests.length >= 5)
  t.true(fileRoutes.requests.slice(2).every(({ range }) => /^bytes=\d+-$/.test(range ?? '')))
  holds(t, directory, 'file')
})

test('a file cut in transit resumes where the server has it, and waits while the server has no room', async (t) => {
  const { fileRoutes, fetch, path } = await copyingAgent(t)
  writeFileSync(path, bytes)
  let nth = 0
  fileRoutes.fault = (request, response) => {
    nth += 1
    if (nth === 1) {
      request.resume()
      response.writeHead(503, { 'retry-after': '0.1' }).end()
      return true
    }
    // Accepts a part and does not respond; later accepts all and does not respond.
    if (nth === 3 || nth === 5) {
      const taskId = request.url?.split('/')[4] ?? ''
      const held = fileRoutes.sent.get(taskId)
      request.once('data', (piece: Buffer) => {
        if (held) held.bytes = Buffer.concat([held.bytes, piece])
        request.destroy()
      })
      return true
    }
    return false
  }
  const end = await fetch({ path })
  t.like(end, done)
  t.true(fileRoutes.sent.get(end.taskId)?.bytes.equals(bytes))
  t.is(fileRoutes.sent.get(end.taskId)?.sha256, sha256(bytes))
})

test('a tree that gains or loses a file during the read is sent as read, and the result says so', async (t) => {
  const { fileRoutes, fetch, directory } = await copyingAgent(t)
  const path = join(directory, 'tree')
  mkdirSync(path)
  for (const name of ['a', 'b', 'z']) writeFileSync(join(path, name), bytes)
  for (const change of [() => rmSync(join(path, 'z')), () => writeFileSync(join(path, 'new'), 'new')]) {
    let isDone = false
    fileRoutes.fault = () => {
      if (!isDone) change()
      isDone = true
      return false
    }
    const end = await fetch({ path, kind: 'TREE' })
    t.is(end.status, 'SUCCESS')
    t.regex(end.error ?? '', /tree.* changed while the tree was read/)
  }
})

test('a tree with a dangling link, a cycle, a special file, or too many bytes is reported', async (t) => {
  const { fileRoutes, fetch, directory } = await copyingAgent(t)
  const path = join(directory, 'tree')
  mkdirSync(join(path, 'sub'), { recursive: true })
  writeFileSync(join(path, 'file'), 'one')
  symlinkSync('sub', join(path, 'to-sub'))
  symlinkSync('nowhere', join(path, 'sub/dangling'))
  const dangling = await fetch({ path, kind: 'TREE' })
  const came = fileRoutes.sent.get(dangling.taskId)?.bytes ?? Buffer.alloc(0)
  t.is((await inTar(came))['sub/dangling'], 'symlink nowhere')
  t.regex(
    (await fetch({ path, kind: 'TREE', follow: true })).error ?? '',
    /sub\/dangling is a symbolic link that leads to nothing/,
  )
  rmSync(join(path, 'sub/dangling'))
  symlinkSync('..', join(path, 'sub/up'))
  t.regex(
    (await fetch({ path, kind: 'TREE', follow: true })).error ?? '',
    /sub\/up leads back to a directory that contains it/,
  )
  t.regex((await fetch({ path, kind: 'TREE', maxSize: 2000 })).error ?? '', /has more than 2000 bytes/)
  t.regex(
    (await fetch({ path: join(path, 'file'), kind: 'TREE' })).error ?? '',
    /file is a file, not a directory/,
  )
  t.regex(
    (await fetch({ path: join(path, 'to-sub'), kind: 'TREE' })).error ?? '',
    /to-sub is a symbolic link/,
  )
  spawnSync('mkfifo', [join(path, 'sub/fifo')])
  t.regex(
    (await fetch({ path, kind: 'TREE' })).error ?? '',
    /sub\/fifo is a FIFO, not a file, directory or symlink/,
  )
})
