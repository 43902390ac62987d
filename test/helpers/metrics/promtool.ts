import { spawnSync } from 'node:child_process'

/** Whether Prometheus' own checker is installed (Debian package `prometheus`). */
export const hasPromtool = spawnSync('promtool', ['--version']).error === undefined

/** Fails if promtool complains about `input`, or about the files that the arguments name. */
export function promtool(args: readonly string[], input = ''): string {
  const { status, stdout, stderr } = spawnSync('promtool', args, { input, encoding: 'utf8' })
  if (status !== 0) throw new Error(`promtool ${args.join(' ')}: ${stdout}${stderr}`)
  return stdout + stderr
}
