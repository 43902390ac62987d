/** How a task is named, in the words of help (names/task-names.ts). */
export const taskDescription = 'task id, its first or last 6 characters, or latest'
export const tasksDescription = 'task ids, their first or last 6 characters, or latest'
