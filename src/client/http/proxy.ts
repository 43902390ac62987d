/** Whether NO_PROXY names this host: `*`, `host`, `.domain`, `host:port`. */
function exempt(url: URL, list: string): boolean {
  const host = url.hostname.replace(/^\[|\]$/g, '').toLowerCase()
  const port = url.port || (url.protocol === 'https:' ? '443' : '80')
  return list
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .some((entry) => {
      if (entry === '*') return true
      const [, name = '', wantedPort] = /^(.*?)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? []
      if (wantedPort !== undefined && wantedPort !== port) return false
      const bare = name.replace(/^\*?\./, '')
      return host === bare || host.endsWith(`.${bare}`)
    })
}

/** The proxy that the environment names for `url` (contract §9: HTTPS_PROXY, HTTP_PROXY, NO_PROXY, in both cases). */
export function proxyFor(url: URL, env: NodeJS.ProcessEnv): string | undefined {
  const proxy =
    url.protocol === 'https:'
      ? (env['https_proxy'] ?? env['HTTPS_PROXY'])
      : (env['http_proxy'] ?? env['HTTP_PROXY'])
  if (proxy === undefined || proxy === '') return undefined
  return exempt(url, env['no_proxy'] ?? env['NO_PROXY'] ?? '') ? undefined : proxy
}
