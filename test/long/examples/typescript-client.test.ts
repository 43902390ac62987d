import { execFileSync } from 'node:child_process'
import test from 'ava'

test('the TypeScript client is generated from the OpenAPI document, compiles and lists hosts', (t) => {
  const run = (program: string, argv: string[]) =>
    execFileSync(program, argv, { cwd: 'examples/typescript-client', encoding: 'utf8' })
  run('npm', ['ci'])
  const commands = 'npm run --silent generate >&2 && npm run --silent check && npm start --silent'
  t.regex(run(process.execPath, ['../../.ci/with-server.js', 'sh', '-c', commands]), /^web1/m)
})
