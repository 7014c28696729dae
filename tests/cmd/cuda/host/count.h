int count();
