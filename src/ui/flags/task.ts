/** How a task is named, in the words of help (names/task-names.ts). */
export const taskDescription =
  'id of the task, 6 or more of its first or last characters, or latest: your newest'
export const tasksDescription =
  'ids of the tasks, 6 or more of their first or last characters, or latest: your newest'
