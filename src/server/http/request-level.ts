type Level = 'debug' | 'info' | 'warn'

/** Asked again and again by monitors. */
const polled = new Set(['/api/health', '/metrics'])
const ready = '/api/ready'

/** What agents ask: every few seconds, from every host. */
export const isOfAgents = (route: string): boolean => route.startsWith('/api/agent/')

/** At which level requests are logged. Checks of readiness are told when their answer changes, not each few seconds. */
export function createRequestLevel(): (route: string, status: number) => Level {
  let wasReady: boolean | null = null
  return (route, status) => {
    if (route === ready) {
      const isReady = status < 400
      if (isReady === wasReady) return 'debug'
      wasReady = isReady
    }
    if (status >= 500) return 'warn'
    return isOfAgents(route) || (polled.has(route) && status < 400) ? 'debug' : 'info'
  }
}
