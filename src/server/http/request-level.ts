type Level = 'debug' | 'info' | 'warn'

/** Polled by monitors. */
const polled = new Set(['/api/health', '/metrics'])
const ready = '/api/ready'

/** Whether agents call it: every few seconds, from every host. */
export const isOfAgents = (route: string): boolean => route.startsWith('/api/agent/')

/** Log level of each request. A check of readiness is logged only when its answer changes. */
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
